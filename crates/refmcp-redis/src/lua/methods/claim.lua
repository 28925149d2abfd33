-- call, claimant, then the stream where there is one
local session, claimant, number = used(), tonumber(ARGV[2]), tonumber(ARGV[3])
if not session then
  return {'unknown'}
end
local log = number and stream(session, number)
if number and (not log or log.state ~= RUNNING) then
  return {'unknown'}
end
local slot = slot_of(session, PARKED, ARGV[1])
if not slot or not (slot.state == FILLED or (slot.state == TAKEN and slot.claimant == claimant)) then
  return {'unknown'}
end
slot.state, slot.claimant = TAKEN, claimant
save_slot(session, PARKED, ARGV[1], slot)
if log then
  log.writer = claimant
  log.changed = true
end
return {'claimed', value_of(session, PARKED, ARGV[1]), log and log.last or 0}
