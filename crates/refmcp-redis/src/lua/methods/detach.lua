-- stream, then the reader where one is meant
local session, number = find(KEYS[1]), tonumber(ARGV[1])
local log = session and stream(session, number)
if log and (not ARGV[2] or tonumber(ARGV[2]) == log.reader) then
  log.away = 1
  log.changed = true
  wake(session, number)
end
return {'detached'}
