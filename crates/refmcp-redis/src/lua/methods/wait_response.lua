-- request
local session = used()
local slot = session and slot_of(session, RESPONSES, ARGV[1])
if not slot or slot.state == DROPPED then
  return {'unknown'}
elseif slot.state == AWAITED then
  if now >= slot.deadline then
    return {'overdue'}
  end
  return {'awaited', session.idle, slot.deadline - now}
end
if slot.state == FILLED then
  slot.state = TAKEN
  save_slot(session, RESPONSES, ARGV[1], slot)
end
return {'body', value_of(session, RESPONSES, ARGV[1])}
