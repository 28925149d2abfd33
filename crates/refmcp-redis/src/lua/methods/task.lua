-- task
local found = task(ARGV[1], 'state')
if not found then
  return {'unknown'}
end
return {'record', tonumber(found[1]), found[3]}
