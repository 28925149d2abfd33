-- after which generation
local newest, after, missed = latest(), tonumber(ARGV[1]), false
if after > newest then
  -- A generation from the future was not given out here: its caller knows nothing about this state.
  after, missed = 0, true
else
  missed = after < tonumber(call('HGET', GENERATIONS, 'floor') or 0)
end
local found = call('ZRANGEBYSCORE', TOPICS, '(' .. int(after), '+inf', 'WITHSCORES')
if #found == 0 and not missed then
  return {'nothing'}
end
return {'changes', newest, missed and 1 or 0, found}
