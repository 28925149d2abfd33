-- Room: for a session, and for all of them.

-- Gives up the stream that ended first of those that were read to the end; gives what that freed.
local function bury_read_out(session)
  local first = call('ZRANGE', session.key .. ':read_out', 0, 0)[1]
  return first and bury(session, tonumber(first)) or 0
end

local function drop_given(session)
  local freed = drop_given_of(session, RESPONSES)
  if freed == 0 then
    freed = drop_given_of(session, PARKED)
  end
  return freed
end

-- Drops the oldest events of the stream that keeps most, up to this size.
local function shorten_longest(session, bytes)
  local candidates = {}
  for _, text in ipairs(call('HKEYS', session.key .. ':streams')) do
    local number = tonumber(text)
    local log = stream(session, number)
    if log and log.bytes > 0 then
      candidates[#candidates + 1] = {number = number, log = log, bytes = log.bytes}
    end
  end
  table.sort(candidates, function(one, other)
    return one.bytes > other.bytes
  end)
  for _, candidate in ipairs(candidates) do
    local freed = 0
    while freed < bytes do
      local cost = drop_oldest(session, candidate.number, candidate.log)
      if cost == 0 then
        break
      end
      freed = freed + cost
    end
    if freed > 0 then
      return freed
    end
  end
  return 0
end

-- Makes room of this size in a session, or as much as can be; gives how much it was.
local function free(session, bytes)
  local freed = 0
  while freed < bytes do
    local step = bury_read_out(session)
    if step == 0 then
      step = drop_given(session)
    end
    if step == 0 then
      step = shorten_longest(session, bytes - freed)
    end
    if step == 0 then
      break
    end
    freed = freed + step
  end
  return freed
end

local function key_of(name)
  return P .. '{' .. name .. '}'
end

-- Gives back sessions, and parts of them, that are over; at most so many of each. True when that was all.
local function sweep_sessions(most)
  local over = call('ZRANGEBYSCORE', P .. 'sessions', '-inf', int(now), 'LIMIT', 0, most)
  for _, name in ipairs(over) do
    close(key_of(name))
  end
  local due = call('ZRANGEBYSCORE', P .. 'due', '-inf', int(now), 'LIMIT', 0, most)
  for _, name in ipairs(due) do
    call('ZREM', P .. 'due', name)
    local session = find(key_of(name))
    if session then
      local next_over = sweep_slots(session, RESPONSES)
      local of_parked = sweep_slots(session, PARKED)
      if of_parked then
        next_over = math.min(next_over or of_parked, of_parked)
      end
      local first = call('LINDEX', session.key .. ':ended', 0)
      local log = first and stream(session, tonumber(first))
      if log then
        local ends = log.ended_at + S.retention
        next_over = math.min(next_over or ends, ends)
      end
      if next_over then
        over_at(session, next_over)
      end
    end
  end
  return #over < most and #due < most
end

-- Makes room among all sessions: first of what is over, then of those that keep most. Only the largest are looked at,
-- so that Redis is not blocked for long.
local function reclaim(bytes)
  sweep_sessions(1000)
  -- Looking through sessions takes a while, so there is room for some more afterwards.
  local goal = bytes + math.floor(S.total_bytes / 16)
  for _, name in ipairs(call('ZREVRANGE', P .. 'held', 0, 255)) do
    if sum() + goal <= S.total_bytes then
      break
    end
    local session = find(key_of(name))
    if session then
      free(session, sum() + goal - S.total_bytes)
    end
  end
  return sum() + bytes <= S.total_bytes
end

-- Takes room, making some where that is possible; false when it is not. A full session makes a little more, since looking
-- through its streams takes a while.
local function take(session, bytes)
  while session.held + bytes > S.session_bytes do
    if free(session, math.max(bytes, math.floor(S.session_bytes / 64))) == 0 then
      return false
    end
  end
  if sum() + bytes > S.total_bytes and not reclaim(bytes) then
    return false
  end
  session.held = session.held + bytes
  add_to_sum(bytes)
  return true
end

-- Takes room for an event: nil, 'too_large' or 'full'.
local function make_room_in(session, number, log, length)
  local cost = EVENT + length
  if cost > S.stream_bytes then
    return 'too_large'
  end
  while log.bytes > S.stream_bytes - cost do
    if drop_oldest(session, number, log) == 0 then
      break
    end
  end
  return not take(session, cost) and 'full' or nil
end

-- Adds a slot, if there is a place and room for it: 'new', 'known' or 'full'.
local function add_slot(session, kind, key, slot, most, value)
  local added = make_place(session, kind, key, most)
  if added ~= 'new' then
    return added
  end
  if not take(session, SLOT + id_bytes(key) + slot.length) then
    return 'full'
  end
  save_slot(session, kind, key, slot)
  if value then
    call('HSET', part(session, kind.values), key, value)
  end
  over_at(session, slot.remembered)
  return 'new'
end
