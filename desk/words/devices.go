package words

import "tare/desk/data"

// Unused names what a VM lacks: "Video, graphics and audio".
func Unused(u data.Unused) string { return Capital(list(u.Kinds)) }
