-- request, within
local session = used()
if not session then
  return {'unknown'}
end
local deadline = now + tonumber(ARGV[2])
local slot = {deadline = deadline, remembered = deadline + S.late, state = AWAITED, claimant = READ, length = 0}
local added = add_slot(session, RESPONSES, ARGV[1], slot, S.pending_requests)
return {added == 'full' and 'full' or 'expected'}
