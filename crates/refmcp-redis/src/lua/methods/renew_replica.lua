-- replica, ttl
local key = P .. 'replica:' .. ARGV[1]
local expires = now + tonumber(ARGV[2])
call('SET', key, int(expires), 'KEEPTTL')
keep(key, expires)
return {'renewed'}
