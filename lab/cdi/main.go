// What containerd makes of a folder of CDI descriptions: each file that it refuses and why, the devices that it knows,
// and what a container that asks for some of them would get. One JSON document on stdout.
//
//	cdi FOLDER [DEVICE...]
//
// By the calls that containerd 2.2 makes itself (pkg/cdi/oci_opt.go there), of the version of the library that its
// go.mod names: a file that is refused is no failure, a device that nobody describes is.
package main

import (
	"encoding/json"
	"os"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

type reading struct {
	Refused   map[string][]string `json:"refused"`
	Devices   []string            `json:"devices"`
	NotGiven  string              `json:"not_given"`
	Container *oci.Spec           `json:"container"`
}

func main() {
	found := reading{Refused: map[string][]string{}, Devices: []string{}}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(os.Args[1]), cdi.WithAutoRefresh(false))
	if err != nil {
		panic(err)
	}
	_ = cache.Refresh() // the errors are asked for file by file
	for path, errs := range cache.GetErrors() {
		for _, one := range errs {
			found.Refused[path] = append(found.Refused[path], one.Error())
		}
	}
	found.Devices = append(found.Devices, cache.ListDevices()...)
	container := &oci.Spec{}
	if _, err := cache.InjectDevices(container, os.Args[2:]...); err != nil {
		found.NotGiven = err.Error()
	} else {
		found.Container = container
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}
