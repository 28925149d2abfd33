local session = used()
if not session then
  return {'unknown'}
end
return {'record', call('HMGET', session.key, 'version', 'revision', 'facts', 'principal')}
