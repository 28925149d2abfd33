-- version, facts
local session = used()
if not session then
  return {'unknown'}
end
local record = call('HMGET', session.key, 'version', 'revision', 'facts', 'principal')
if record[1] ~= ARGV[1] then
  return {'conflict', record}
end
if #ARGV[2] > S.facts_bytes then
  return {'too_large'}
end
if not take(session, #ARGV[2]) then
  return {'full'}
end
give(session, #record[3])
local version = int(tonumber(record[1]) + 1)
call('HSET', session.key, 'version', version, 'facts', ARGV[2])
return {'updated', tonumber(version)}
