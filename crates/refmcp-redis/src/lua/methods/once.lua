-- key, ttl
local used = P .. 'keys'
call('ZREMRANGEBYSCORE', used, '-inf', int(now))
if call('ZSCORE', used, ARGV[1]) then
  return {'again'}
elseif call('ZCARD', used) >= S.keys then
  return {'full'}
end
local expires = now + tonumber(ARGV[2])
call('ZADD', used, int(expires), ARGV[1])
keep(used, expires)
return {'first'}
