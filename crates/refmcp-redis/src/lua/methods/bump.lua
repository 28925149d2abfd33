-- topic
-- Generations rise even if Redis has lost the last ones.
local generation = math.max(latest() + 1, micros)
call('HSET', GENERATIONS, 'latest', int(generation))
call('ZADD', TOPICS, int(generation), ARGV[1])
local over = call('ZCARD', TOPICS) - S.topics
if over > 0 then
  local forgotten = call('ZPOPMIN', TOPICS, over)
  call('HSET', GENERATIONS, 'floor', forgotten[#forgotten])
end
keep(TOPICS, now + REMEMBERED)
keep(GENERATIONS, now + REMEMBERED)
hint('topics')
return {'bumped', generation}
