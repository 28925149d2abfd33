-- how many sessions, tasks and keys at once
local most = tonumber(ARGV[1])
local all = sweep_sessions(most)
all = sweep_tasks(most) and all
call('ZREMRANGEBYSCORE', P .. 'keys', '-inf', int(now))
return {all and 'done' or 'more'}
