-- The agent of the node writes the conditions. A check that has failed does not mend itself; everything else is awaited.
local health = {status = "Progressing", message = "The agent of the node has not reported yet."}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    elseif condition.status == "False" and condition.reason == "ChecksFailed" then
      health.status = "Degraded"
    end
  end
end
return health
