package bom

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

const status = `Package: libgit2-1.5
Status: install ok installed
Architecture: amd64
Version: 1.5.1+ds-1
Description: a library
 Package: not-this

Package: perl
Status: deinstall ok config-files
Architecture: amd64
Version: 5.36.0-7
`

func TestTheListHasModulesAndPackages(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	image := Image{
		Name: "registry.example.com/gitvolume", Version: "v0.1.0", Architecture: "amd64", Digest: "sha256:" + strings.Repeat("ab", 32),
		Made: time.Unix(1_800_000_000, 0), Program: program, Licences: map[string][]string{"std": {"BSD-3-Clause"}},
		Status:     []byte(status),
		Copyrights: map[string][]byte{"libgit2-1.5": []byte("Format: https://example.com\nLicense: GPL-2-with-linking-exception\n\nLicense: MIT\nLicense: MIT\n")},
	}
	text, err := Write(image)
	if err != nil {
		t.Fatal(err)
	}
	var list document
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Components) != 2 {
		t.Fatalf("%d components, want the standard library and one package:\n%s", len(list.Components), text)
	}
	std, deb := list.Components[0], list.Components[1]
	if std.Name != "std" || !strings.HasPrefix(std.Version, "go1.") || std.Licences[0].Licence.ID != "BSD-3-Clause" {
		t.Errorf("the standard library is %+v", std)
	}
	if want := "pkg:deb/debian/libgit2-1.5@1.5.1%2Bds-1?arch=amd64&distro=debian-12"; deb.PURL != want {
		t.Errorf("the package is %s, want %s", deb.PURL, want)
	}
	if len(deb.Licences) != 2 || deb.Licences[0].Licence.Name != "GPL-2-with-linking-exception" {
		t.Errorf("the package's licences are %+v", deb.Licences)
	}
	again, err := Write(image)
	if err != nil || string(again) != string(text) {
		t.Errorf("the same image has another list: %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := Write(Image{Program: []byte("#!/bin/sh\n")}); err == nil {
		t.Error("a shell script has a list of modules")
	}
}
