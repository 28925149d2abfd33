-- stream, writer
local session, number = used(), tonumber(ARGV[1])
local log = session and number ~= 0 and stream(session, number)
if not log or log.state ~= RUNNING or log.writer ~= tonumber(ARGV[2]) then
  return {'kept'}
end
remove(session, number, log)
return {'forgotten'}
