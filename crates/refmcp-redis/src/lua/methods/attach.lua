-- stream, where to begin: behind this event, or '' for what is unread
local session, number = used(), tonumber(ARGV[1])
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
local after, missed = tonumber(ARGV[2]), 0
if not after then
  after = math.max(log.read, log.gone)
  missed = after - log.read
end
if after > log.last then
  return {'beyond'}
elseif after < log.gone then
  return {'gone', log.request}
elseif after == log.last and log.state ~= RUNNING then
  return {'ended'}
end
log.reader = log.reader + 1
log.away = 0
log.changed = true
wake(session, number)
return {'reading', log.reader, after, missed}
