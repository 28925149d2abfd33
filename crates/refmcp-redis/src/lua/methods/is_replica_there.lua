-- replica
local expires = call('GET', P .. 'replica:' .. ARGV[1])
return {expires and now < tonumber(expires) and 'there' or 'gone'}
