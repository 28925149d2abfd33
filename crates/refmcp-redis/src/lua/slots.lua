-- Slots: each has a key and one value, which is there at once or comes later. Responses to server requests come later, and
-- are read; parked calls are there, and one claimant takes each.

local SLOT = 128
local AWAITED, FILLED, TAKEN, DROPPED = 0, 1, 2, 3
-- No engine has it: the value was read, which any number may.
local READ = -1

local RESPONSES = {slots = ':responses', values = ':bodies'}
local PARKED = {slots = ':parked', values = ':states'}

local function unpack_slot(packed)
  local slot = cmsgpack.unpack(packed)
  return {deadline = slot[1], remembered = slot[2], state = slot[3], claimant = slot[4], length = slot[5]}
end

local function save_slot(session, kind, key, slot)
  local packed = cmsgpack.pack({slot.deadline, slot.remembered, slot.state, slot.claimant, slot.length})
  call('HSET', part(session, kind.slots), key, packed)
end

-- The slot of a key that is known, or nil.
local function slot_of(session, kind, key)
  local packed = call('HGET', session.key .. kind.slots, key)
  if packed then
    local slot = unpack_slot(packed)
    return now < slot.remembered and slot or nil
  end
end

local function value_of(session, kind, key)
  return call('HGET', session.key .. kind.values, key) or ''
end

-- All slots by key.
local function all_slots(session, kind)
  local found, slots = call('HGETALL', session.key .. kind.slots), {}
  for index = 1, #found, 2 do
    slots[found[index]] = unpack_slot(found[index + 1])
  end
  return slots
end

local function remove_slot(session, kind, key)
  local packed = call('HGET', session.key .. kind.slots, key)
  if packed then
    call('HDEL', session.key .. kind.slots, key)
    call('HDEL', session.key .. kind.values, key)
    give(session, SLOT + id_bytes(key) + unpack_slot(packed).length)
  end
end

-- Forgets what is over; gives when the next one is.
local function sweep_slots(session, kind)
  local next_over
  for key, slot in pairs(all_slots(session, kind)) do
    if now >= slot.remembered then
      remove_slot(session, kind, key)
    else
      next_over = math.min(next_over or slot.remembered, slot.remembered)
    end
  end
  return next_over
end

local function is_over(slot)
  if slot.state == AWAITED then
    return now >= slot.deadline
  end
  return slot.state ~= FILLED
end

-- Makes a place for a slot: 'new', 'known' or 'full'.
local function make_place(session, kind, key, most)
  if slot_of(session, kind, key) then
    return 'known'
  end
  remove_slot(session, kind, key)
  if call('HLEN', session.key .. kind.slots) >= most then
    sweep_slots(session, kind)
  end
  if call('HLEN', session.key .. kind.slots) >= most then
    -- One that is over may go: it is kept for retries, which come soon or not at all.
    local oldest, remembered
    for other, slot in pairs(all_slots(session, kind)) do
      if is_over(slot) and (not remembered or slot.remembered < remembered) then
        oldest, remembered = other, slot.remembered
      end
    end
    if oldest then
      remove_slot(session, kind, oldest)
    end
  end
  return call('HLEN', session.key .. kind.slots) < most and 'new' or 'full'
end

-- Drops the value that was given and would be forgotten first; gives what that freed.
local function drop_given_of(session, kind)
  local oldest, remembered
  for key, slot in pairs(all_slots(session, kind)) do
    if slot.state == TAKEN and slot.length > 0 and (not remembered or slot.remembered < remembered) then
      oldest, remembered = key, slot.remembered
    end
  end
  if not oldest then
    return 0
  end
  local slot = slot_of(session, kind, oldest)
  if not slot then
    remove_slot(session, kind, oldest)
    return 1
  end
  local freed = slot.length
  slot.state, slot.length = DROPPED, 0
  save_slot(session, kind, oldest, slot)
  call('HDEL', session.key .. kind.values, oldest)
  give(session, freed)
  return freed
end
