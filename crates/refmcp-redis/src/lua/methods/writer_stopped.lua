-- stream
local session = used()
local log = session and stream(session, tonumber(ARGV[1]))
if not log then
  return {'unknown'}
elseif log.state == RUNNING then
  return {'running', session.idle}
end
return {log.state == CANCELLED and 'cancelled' or 'ended'}
