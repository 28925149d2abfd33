-- request
local session = used()
if not session then
  return {'cancelled', 0}
end
local running, count = call('HGETALL', session.key .. ':running'), 0
for index = 1, #running, 2 do
  local number = tonumber(running[index])
  local log = running[index + 1] == ARGV[1] and stream(session, number)
  if log and log.state == RUNNING then
    finish(session, number, log, CANCELLED)
    wake(session, number)
    count = count + 1
  end
end
return {'cancelled', count}
