// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import "github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"

// advance is the width of a character of small text, in pixels: fonts of one width have 0.6 of their size.
const advance = 6.65

// style has the colours for light and dark surroundings. Those of roles are of Okabe and Ito's set, which is told apart
// with any colour vision (jfly.uni-koeln.de/color); letters and hatching say the same without colours.
const style = `<style>
.ll{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:11px}
.ll .bg{fill:#ffffff}
.ll .pkg{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
.ll .box{fill:#f6f8fa;stroke:#8c959f}
.ll .l3{fill:#ffffff;stroke:#d0d7de}
.ll .t{fill:#1f2328}
.ll .h1{fill:#1f2328;font-size:18px;font-weight:700}
.ll .h2{fill:#1f2328;font-size:12px;font-weight:700}
.ll .b{fill:#1f2328;font-weight:700}
.ll .f{fill:#57606a}
.ll .bad{fill:#a33b00;font-weight:700}
.ll .good{fill:#006b4f;font-weight:700}
.ll .cpu{stroke:#1f2328;stroke-opacity:.35}
.ll .hit{fill:none;stroke:#d55e00;stroke-width:2.5}
.ll .warn{fill:#d55e00;stroke:#ffffff;stroke-width:.8}
.ll .bang{fill:#ffffff;font-weight:700;text-anchor:middle}
.ll .mid{text-anchor:middle}
.ll .num{font-size:11px;font-weight:700;text-anchor:middle}
.ll .let{font-size:9px;text-anchor:middle}
.ll .rH{fill:#e69f00}
.ll .rS{fill:#f0e442}
.ll .rI{fill:#2bb38a}
.ll .rD{fill:#cc79a7}
.ll .rP{fill:#0072b2}
.ll .ro{fill:#d0d7de}
.ll .rX{fill:#ff9b6a}
.ll .rn{fill:#ffffff;stroke-dasharray:2 2}
.ll .on{fill:#10151a}
.ll .onP{fill:#ffffff}
.ll .ono{fill:#57606a}
.ll .hatch{fill:url(#ll-hatch)}
.ll .stripe{fill:url(#ll-stripe)}
.ll .cross{fill:url(#ll-cross);stroke:#d55e00}
.ll .dots{fill:url(#ll-dots);stroke:#2bb38a}
.ll .used{fill:#0072b2;stroke:#0072b2}
.ll .none{fill:none;stroke:#8c959f;stroke-dasharray:3 3}
.ll .nic{fill:#ffffff;stroke:#57606a}
@media (prefers-color-scheme:dark){
.ll .bg{fill:#0d1117}
.ll .pkg,.ll .box{stroke:#4d5663}
.ll .box{fill:#161b22}
.ll .l3{fill:#0d1117;stroke:#30363d}
.ll .t,.ll .h1,.ll .h2,.ll .b{fill:#e6edf3}
.ll .f{fill:#9198a1}
.ll .bad{fill:#ff9a57}
.ll .good{fill:#4fd1a8}
.ll .ro{fill:#30363d}
.ll .rn{fill:#0d1117}
.ll .ono{fill:#9198a1}
.ll .onn{fill:#e6edf3}
.ll .nic{fill:#0d1117;stroke:#9198a1}
}
</style>
<defs>
<pattern id="ll-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="1.2" height="5" fill="#57606a" fill-opacity=".55"/></pattern>
<pattern id="ll-stripe" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="6" fill="#ffffff" fill-opacity=".22"/></pattern>
<pattern id="ll-cross" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 0L6 6M6 0L0 6" stroke="#d55e00" stroke-width="1"/></pattern>
<pattern id="ll-dots" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1" fill="#2bb38a"/></pattern>
</defs>
`

// look says how the CPUs of a role are drawn: classes of the ground, of the text on it, and of what lies between.
type look struct{ ground, ink, over string }

func lookOf(role view.RoleName) look {
	return map[view.RoleName]look{
		view.RoleHousekeeping: {"rH", "on", ""},
		view.RoleShared:       {"rS", "on", ""},
		view.RoleIsolated:     {"rI", "on", ""},
		view.RoleDataPlane:    {"rD", "on", ""},
		view.RoleOwned:        {"rP", "onP", "stripe"},
		view.RoleOffline:      {"ro", "ono", "hatch"},
		view.RoleNone:         {"rn", "onn", ""},
	}[role]
}
