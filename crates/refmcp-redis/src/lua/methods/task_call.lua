-- task
local found = task(ARGV[1], 'call')
if not found or not found[3] then
  return {'unknown'}
end
return {'call', found[3]}
