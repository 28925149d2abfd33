-- The event store of a stream: its events, with one writer and one reader at a time.
--
-- All events of a session are in one hash, by stream and number. Those of the GET stream begin with the 16 bytes of the
-- key that they were posted with.

local EVENT = 64
local STREAM = 512
local POST_KEY = 16
-- A longer id is not remembered after its stream: tombstones are many.
local TOMBSTONE_ID = 256

local RUNNING, FINAL, CANCELLED = 0, 1, 2

-- The length of a request's id, which is written behind a letter for its kind; numbers cost nothing.
local function id_bytes(request)
  if request == '' or string.sub(request, 1, 1) == 'i' then
    return 0
  end
  return #request - 1
end

local function new_log(request, writer)
  return {
    request = request, writer = writer, gone = 0, last = 0, bytes = 0,
    state = RUNNING, ended_at = 0, read = 0, reader = 0, away = 0,
  }
end

function pack_log(log)
  return cmsgpack.pack({
    log.request, log.writer, log.gone, log.last, log.bytes,
    log.state, log.ended_at, log.read, log.reader, log.away,
  })
end

local function unpack_log(packed)
  local log = cmsgpack.unpack(packed)
  return {
    request = log[1], writer = log[2], gone = log[3], last = log[4], bytes = log[5],
    state = log[6], ended_at = log[7], read = log[8], reader = log[9], away = log[10],
  }
end

-- A stream that is kept, or nil. Every session has the GET stream, number 0.
local function stream(session, number)
  local log = session.logs[number]
  if log == nil then
    local packed = call('HGET', session.key .. ':streams', int(number))
    if packed then
      log = unpack_log(packed)
    else
      log = number == 0 and new_log('', 0)
    end
    session.logs[number] = log
  end
  return log or nil
end

local function field(number, seq)
  return int(number) .. ':' .. int(seq)
end

local function wake(session, number)
  hint(session.name .. ':' .. int(number))
end

-- Drops the oldest event, unless it is the final one; gives what it cost, or 0.
local function drop_oldest(session, number, log)
  if log.gone == log.last or (log.gone + 1 == log.last and log.state == FINAL) then
    return 0
  end
  local oldest = field(number, log.gone + 1)
  local length
  if number == 0 then
    local event = call('HGET', session.key .. ':events', oldest) or ''
    call('HDEL', session.key .. ':posted', string.sub(event, 1, POST_KEY))
    length = math.max(0, #event - POST_KEY)
  else
    length = call('HSTRLEN', session.key .. ':events', oldest)
  end
  call('HDEL', session.key .. ':events', oldest)
  log.gone = log.gone + 1
  log.bytes = log.bytes - EVENT - length
  log.changed = true
  give(session, EVENT + length)
  return EVENT + length
end

-- Adds an event for which room was made.
local function push(session, number, log, event, length)
  log.last = log.last + 1
  log.bytes = log.bytes + EVENT + length
  log.changed = true
  call('HSET', part(session, ':events'), field(number, log.last), event)
  wake(session, number)
end

-- Notes that a stream has ended and was read to its end, if that is so: it makes room before others do.
local function note_read_out(session, number, log)
  if log.state ~= RUNNING and log.read == log.last then
    call('ZADD', part(session, ':read_out'), int(log.ended_at), int(number))
  end
end

-- Ends a stream of a request.
local function finish(session, number, log, state)
  log.state = state
  log.ended_at = now
  log.changed = true
  note_read_out(session, number, log)
  call('RPUSH', part(session, ':ended'), int(number))
  call('HDEL', session.key .. ':running', int(number))
  over_at(session, now + S.retention)
end

-- Takes a stream away; gives what it cost.
local function remove(session, number, log)
  local first = log.gone + 1
  while first <= log.last do
    local fields = {}
    for seq = first, math.min(first + 999, log.last) do
      fields[#fields + 1] = field(number, seq)
    end
    call('HDEL', session.key .. ':events', unpack(fields))
    first = first + 1000
  end
  call('HDEL', session.key .. ':streams', int(number))
  call('HDEL', session.key .. ':running', int(number))
  session.logs[number] = false
  local cost = STREAM + id_bytes(log.request) + log.bytes
  give(session, cost)
  wake(session, number)
  return cost
end

-- Leaves of a stream only what it answered; gives what that freed.
local function bury(session, number)
  call('LREM', session.key .. ':ended', 1, int(number))
  call('ZREM', session.key .. ':read_out', int(number))
  local log = stream(session, number)
  if not log then
    return 0
  end
  local freed = remove(session, number, log)
  local request = id_bytes(log.request) <= TOMBSTONE_ID and log.request or ''
  local tombstones = part(session, ':tombstones')
  call('ZADD', tombstones, int(number), int(number) .. ':' .. request)
  local over = call('ZCARD', tombstones) - S.tombstones
  if over > 0 then
    call('ZPOPMIN', tombstones, over)
  end
  return freed
end

-- The request of a stream that is no longer kept: '' where it had none or that is not known; nil without a tombstone.
local function tombstone(session, number)
  local found = call('ZRANGEBYSCORE', session.key .. ':tombstones', int(number), int(number))[1]
  return found and string.sub(found, string.find(found, ':', 1, true) + 1)
end

function settle(session)
  while true do
    local first = call('LINDEX', session.key .. ':ended', 0)
    if not first then
      return
    end
    local number = tonumber(first)
    local log = stream(session, number)
    if log and now < log.ended_at + S.retention then
      return
    end
    bury(session, number)
  end
end

-- What to say to a reader; nil when there are events for it.
local function verdict(log, reader, after)
  if reader ~= log.reader then
    return {'replaced'}
  elseif log.away == 1 then
    return {'detached'}
  elseif after < log.gone then
    return {'gone', log.request}
  elseif after < log.last then
    return nil
  elseif log.state == RUNNING then
    return {'nothing'}
  end
  return {'end'}
end
