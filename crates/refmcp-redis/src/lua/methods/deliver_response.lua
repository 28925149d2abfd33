-- request, body
local session = used()
local slot = session and slot_of(session, RESPONSES, ARGV[1])
if not slot then
  return {'unknown'}
elseif slot.state ~= AWAITED or now >= slot.deadline then
  return {'late'}
elseif not take(session, #ARGV[2]) then
  return {'full'}
end
slot.state, slot.length = FILLED, #ARGV[2]
save_slot(session, RESPONSES, ARGV[1], slot)
call('HSET', part(session, RESPONSES.values), ARGV[1], ARGV[2])
hint(session.name .. ':responses')
return {'taken'}
