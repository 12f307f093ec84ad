package nodeplugin

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// Parse reads the arguments of a command that takes flags only. The error is
// flag.ErrHelp, or names the flag and where there is help.
func Parse(flags *flag.FlagSet, arguments []string) error {
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w; %s --help lists the flags", err, flags.Name())
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: %s takes flags only, %s --help lists them", flags.Arg(0), flags.Name(), flags.Name())
	}
	return nil
}

// FlagsText lists the flags as the help of a command shows them.
func FlagsText(flags *flag.FlagSet) string {
	var text strings.Builder
	flags.VisitAll(func(f *flag.Flag) {
		value, meaning := flag.UnquoteUsage(f)
		fmt.Fprintf(&text, "  --%s %s\n        %s", f.Name, value, meaning)
		if f.DefValue != "" && f.DefValue != "false" {
			fmt.Fprintf(&text, " (default %s)", f.DefValue)
		}
		text.WriteString("\n")
	})
	return text.String()
}

// OneLine has a text say the same in one line, however many errors it was joined of.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
