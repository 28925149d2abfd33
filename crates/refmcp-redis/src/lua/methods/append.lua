-- stream, writer, number of the event, whether it is the final one, event
local session = used()
local number, writer, seq = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not session or number == 0 then
  return {'unknown'}
end
local log = stream(session, number)
if not log then
  return {tombstone(session, number) and 'ended' or 'unknown'}
elseif log.writer ~= writer then
  return {'fenced'}
elseif seq >= 1 and seq <= log.last then
  return {'already'}
elseif log.state == CANCELLED then
  return {'cancelled'}
elseif log.state == FINAL then
  return {'ended'}
elseif seq ~= log.last + 1 then
  return {'gap', log.last}
end
local refused = make_room_in(session, number, log, #ARGV[5])
if refused then
  return {refused}
end
push(session, number, log, ARGV[5], #ARGV[5])
if ARGV[4] == '1' then
  finish(session, number, log, FINAL)
end
return {'stored'}
