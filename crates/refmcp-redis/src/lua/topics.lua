-- Topics with their generations: a sorted set, and a hash with the newest of all and the newest that was forgotten.

local TOPICS = P .. 'topics'
local GENERATIONS = P .. 'generations'
-- After that, changes are as good as forgotten.
local REMEMBERED = 30 * 24 * HOUR

local function latest()
  return tonumber(call('HGET', GENERATIONS, 'latest') or 0)
end
