-- stream, reader, behind which event
local session, number = used(), tonumber(ARGV[1])
local log = session and stream(session, number)
local said = log and verdict(log, tonumber(ARGV[2]), tonumber(ARGV[3]))
if said and said[1] == 'nothing' then
  return {'nothing', session.idle}
end
return {'readable'}
