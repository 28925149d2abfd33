-- What every script begins with. The lines before this file set P, the prefix of all keys, S, the settings, and whether
-- the time is GIVEN with the last argument.

local call = redis.call
local HOUR = 3600000

-- The time of Redis, in microseconds and in milliseconds: the clocks of replicas make no difference.
local micros
if GIVEN then
  micros = tonumber(table.remove(ARGV))
else
  local clock = call('TIME')
  micros = clock[1] * 1000000 + clock[2]
end
local now = math.floor(micros / 1000)

-- A whole number as text. Lua writes long ones with an exponent.
local function int(number)
  return string.format('%.0f', number)
end

-- Lets Redis drop a key some time after it is over. Scripts decide by the times that they have stored; this is for keys
-- that no replica sweeps any more. It is moved an hour at a time, not with every use.
local function keep(key, time)
  if call('PEXPIRETIME', key) < time then
    call('PEXPIREAT', key, int(time + HOUR))
  end
end

-- Wakes those who wait for this.
local function hint(what)
  call('PUBLISH', P .. 'hints', what)
end
