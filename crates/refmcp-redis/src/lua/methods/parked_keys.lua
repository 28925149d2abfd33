local session, keys = used(), {}
if session then
  for key, slot in pairs(all_slots(session, PARKED)) do
    if slot.state == FILLED and now < slot.remembered then
      keys[#keys + 1] = key
    end
  end
end
return {'keys', keys}
