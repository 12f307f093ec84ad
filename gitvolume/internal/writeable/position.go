package writeable

// branch is the full name of the branch that the volume is on.
func (v *Volume) branch() string {
	if v.position.Diverged {
		return v.Side
	}
	return v.Ref
}
