package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// shared is the module that both drivers are built with.
const shared = "liken.sh/csicommon"

// buildsAlone builds the driver from nothing but the commit's files, without the
// workspace, and checks that the shared module is the commit's own: a tag of a driver
// says which csicommon it has, and no tag of that module is needed.
func (r repository) buildsAlone(driver string) (err error) {
	work, err := os.MkdirTemp("", "liken-release-")
	if err != nil {
		return fmt.Errorf("make room for a build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	archive := filepath.Join(work, "tree.tar")
	if _, err := r.git("archive", "--output", archive, "HEAD", driver, "csicommon"); err != nil {
		return err
	}
	if _, err := (command{dir: work}).run("tar", "--extract", "--file", archive); err != nil {
		return err
	}
	module := command{dir: filepath.Join(work, driver), env: []string{"GOWORK=off"}}
	if driver == "pernode" {
		module.env = append(module.env, "CGO_ENABLED=0")
	}
	text, err := module.run("go", "mod", "edit", "-json")
	if err != nil {
		return err
	}
	if err := ownShared([]byte(text)); err != nil {
		return fmt.Errorf("%s/go.mod: %w", driver, err)
	}
	_, err = module.run("go", "build", "-mod=readonly", "-trimpath", "-tags", "grpcnotrace", "-o", os.DevNull, "./cmd/"+driver)
	if err != nil {
		return fmt.Errorf("%s does not build from what is committed: %w", driver, err)
	}
	return nil
}

// ownShared refuses a go.mod that takes csicommon from elsewhere, or anything else from
// beside it.
func ownShared(goMod []byte) error {
	var module struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal(goMod, &module); err != nil {
		return fmt.Errorf("read what go says of it: %w", err)
	}
	own := false
	for _, replace := range module.Replace {
		if replace.Old.Path != shared {
			return fmt.Errorf("it replaces %s by %s: a release is built of what others publish", replace.Old.Path, replace.New.Path)
		}
		own = replace.New.Path == "../csicommon" && replace.New.Version == ""
	}
	if !own {
		return fmt.Errorf("it does not take %s from this repository: want replace %s => ../csicommon", shared, shared)
	}
	return nil
}
