-- Sessions: finding them, what they hold, and what becomes of it.
--
-- A session is a hash, KEYS[1], and keys that begin with its name. All sessions together have sorted sets of their ends
-- (sessions), of what they hold (held) and of when something in them is over (due), and the sum of what they hold.

local SESSION = 1024

local PARTS = {
  ':streams', ':events', ':running', ':ended', ':read_out', ':tombstones', ':posted',
  ':responses', ':bodies', ':parked', ':states',
}

-- The sessions that this script has looked at, by key; false where there is none.
local sessions = {}
local total, saved_total

local settle

local function sum()
  if not total then
    total = tonumber(call('GET', P .. 'total') or 0)
    saved_total = total
  end
  return total
end

local function add_to_sum(bytes)
  total = math.max(0, sum() + bytes)
end

-- Ends a session, and wakes all who wait in it.
local function close(key)
  local name = string.sub(key, #P + 2, -2)
  local held = call('ZSCORE', P .. 'held', name)
  if held then
    add_to_sum(-held)
  end
  local keys = {key}
  for _, part in ipairs(PARTS) do
    keys[#keys + 1] = key .. part
  end
  call('UNLINK', unpack(keys))
  call('ZREM', P .. 'sessions', name)
  call('ZREM', P .. 'held', name)
  call('ZREM', P .. 'due', name)
  sessions[key] = false
  hint(name)
end

-- The session of a key, or nil.
local function find(key)
  local known = sessions[key]
  if known ~= nil then
    return known or nil
  end
  local facts = call('HMGET', key, 'expires', 'idle', 'held', 'opened', 'created')
  if not facts[1] then
    sessions[key] = false
    return nil
  end
  if now >= tonumber(facts[1]) then
    close(key)
    return nil
  end
  local session = {
    key = key,
    name = string.sub(key, #P + 2, -2),
    expires = tonumber(facts[1]),
    idle = tonumber(facts[2]),
    held = tonumber(facts[3]),
    opened = tonumber(facts[4]),
    created = tonumber(facts[5]),
    logs = {},
    written = {},
  }
  session.saved_held = session.held
  sessions[key] = session
  settle(session)
  return session
end

-- Counts as use of a session. Its end moves a second at a time, so that not every use is a write.
local function touch(session)
  if now + session.idle <= session.expires then
    return
  end
  session.expires = now + session.idle + math.min(1000, math.floor(session.idle / 64))
  call('HSET', session.key, 'expires', int(session.expires))
  call('ZADD', P .. 'sessions', int(session.expires), session.name)
  if call('PEXPIRETIME', session.key) < session.expires then
    keep(session.key, session.expires)
    for _, part in ipairs(PARTS) do
      keep(session.key .. part, session.expires)
    end
  end
  keep(P .. 'sessions', session.expires)
  keep(P .. 'held', session.expires)
  keep(P .. 'total', session.expires)
end

-- The session of KEYS[1], used now, or nil.
local function used()
  local session = find(KEYS[1])
  if session then
    touch(session)
  end
  return session
end

-- Says that something in a session is over then.
local function over_at(session, time)
  call('ZADD', P .. 'due', 'LT', int(time), session.name)
  keep(P .. 'due', time)
end

-- The key of a part of a session, which is about to be written.
local function part(session, name)
  local key = session.key .. name
  session.written[key] = true
  return key
end

local function give(session, bytes)
  session.held = session.held - bytes
  add_to_sum(-bytes)
end

local pack_log

-- Writes what has changed in the sessions that were looked at.
local function commit()
  for _, session in pairs(sessions) do
    if session then
      for number, log in pairs(session.logs) do
        if log and log.changed then
          call('HSET', part(session, ':streams'), int(number), pack_log(log))
        end
      end
      if session.held ~= session.saved_held then
        call('HSET', session.key, 'held', int(session.held))
        call('ZADD', P .. 'held', int(session.held), session.name)
        keep(P .. 'held', session.expires)
      end
      for key in pairs(session.written) do
        keep(key, session.expires)
      end
    end
  end
  if total ~= saved_total then
    call('SET', P .. 'total', int(total), 'KEEPTTL')
    keep(P .. 'total', now + HOUR)
  end
end
