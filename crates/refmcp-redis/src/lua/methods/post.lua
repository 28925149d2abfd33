-- key, event
local session = find(KEYS[1])
if not session then
  return {'unknown'}
end
local known = call('HGET', session.key .. ':posted', ARGV[1])
if known then
  return {'already', tonumber(known)}
end
local log = stream(session, 0)
local refused = make_room_in(session, 0, log, #ARGV[2])
if refused then
  return {refused}
end
push(session, 0, log, ARGV[1] .. ARGV[2], #ARGV[2])
call('HSET', part(session, ':posted'), ARGV[1], int(log.last))
return {'stored', log.last}
