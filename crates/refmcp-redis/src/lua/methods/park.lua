-- call, state, ttl
local session = used()
if not session then
  return {'unknown'}
end
local expires = now + tonumber(ARGV[3])
local slot = {deadline = expires, remembered = expires, state = FILLED, claimant = READ, length = #ARGV[2]}
local added = add_slot(session, PARKED, ARGV[1], slot, S.parked_calls, ARGV[2])
return {added}
