-- owner, behind which position, how many
sweep_tasks(100)
local found = {}
local names = call('ZRANGEBYSCORE', owner_key(ARGV[1]), '(' .. ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do
  local kept = task(name, 'position', 'state')
  if kept then
    found[#found + 1] = kept[3]
    found[#found + 1] = kept[4]
  end
end
return {'tasks', found}
