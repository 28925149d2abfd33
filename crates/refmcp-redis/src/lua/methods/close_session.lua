if not find(KEYS[1]) then
  return {'unknown'}
end
close(KEYS[1])
return {'closed'}
