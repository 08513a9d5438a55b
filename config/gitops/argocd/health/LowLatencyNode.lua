-- The agent of the node writes the conditions. A check that has failed, and a plan that the guard has refused or taken back, do not mend themselves; everything else is awaited.
local health = {status = "Progressing", message = "The agent of the node has not reported yet."}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    elseif condition.status == "False" and
      (condition.reason == "ChecksFailed" or condition.reason == "Refused" or condition.reason == "TakenBack") then
      health.status = "Degraded"
    end
  end
end
return health
