package policy

import (
	"errors"
	"fmt"
)

// Why a class does not arm a volume, besides ErrInvalid.
var (
	ErrForeign = errors.New("it is another driver's")
	ErrPaused  = errors.New("it pauses the volume (" + parameterArmed + "=false)")
)

// Class is what a VolumeAttributesClass says.
type Class struct {
	Name, Driver string
	Parameters   map[string]string
}

// Arm returns the policy by which the driver of that name commits a volume of the class.
// Else the error names the class and wraps ErrForeign, ErrInvalid or ErrPaused; of a
// class that pauses, the policy is returned all the same.
func (c Class) Arm(driver string) (Policy, error) {
	if c.Driver != driver {
		return Policy{}, fmt.Errorf("class %s: its driver is %q, not %q: %w", c.Name, c.Driver, driver, ErrForeign)
	}
	p, err := Parse(c.Parameters)
	if err != nil {
		return Policy{}, fmt.Errorf("class %s: %w", c.Name, err)
	}
	if !p.Armed {
		return p, fmt.Errorf("class %s: %w", c.Name, ErrPaused)
	}
	return p, nil
}
