-- task, version
local found = task(ARGV[1])
if not found or found[1] ~= ARGV[2] then
  return {'changed'}
elseif found[2] then
  return {'same', tonumber(found[2]) - now}
end
return {'same'}
