-- writer, request
local session = used()
if not session then
  return {'unknown'}
end
local open = call('HLEN', session.key .. ':streams') - call('HEXISTS', session.key .. ':streams', '0')
if open >= S.streams and bury_read_out(session) == 0 then
  return {'full'}
end
if not take(session, STREAM + id_bytes(ARGV[2])) then
  return {'full'}
end
-- No number is given out twice, even if Redis has lost the last ones.
local number = math.max(session.opened + 1, now - session.created)
session.opened = number
call('HSET', session.key, 'opened', int(number))
if ARGV[2] ~= '' then
  call('HSET', part(session, ':running'), int(number), ARGV[2])
end
local log = new_log(ARGV[2], tonumber(ARGV[1]))
log.changed = true
session.logs[number] = log
return {'opened', number}
