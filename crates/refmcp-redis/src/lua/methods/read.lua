-- stream, reader, behind which event, how many events and bytes at once
local session, number, after = used(), tonumber(ARGV[1]), tonumber(ARGV[3])
if not session then
  return {'unknown'}
end
local log = stream(session, number)
if not log then
  if number > session.opened then
    return {'unknown'}
  end
  return {'gone', tombstone(session, number) or ''}
end
local said = verdict(log, tonumber(ARGV[2]), after)
if said then
  return said
end
local events, bytes = {}, 0
for seq = after + 1, math.min(log.last, after + tonumber(ARGV[4])) do
  local event = call('HGET', session.key .. ':events', field(number, seq))
  if not event then
    break
  end
  bytes = bytes + #event
  if #events > 0 and bytes > tonumber(ARGV[5]) then
    break
  end
  events[#events + 1] = event
end
if #events == 0 then
  -- Redis was made to drop a key.
  return {'gone', log.request}
end
if after + #events > log.read then
  log.read = after + #events
  log.changed = true
  note_read_out(session, number, log)
end
return {'events', log.state == FINAL and after + #events == log.last and 1 or 0, events}
