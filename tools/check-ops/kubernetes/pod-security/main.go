// Evaluates pod templates by a pod security standard, with the code of Kubernetes' own admission controller. The file has one JSON
// object per line: {"name": …, "template": PodTemplateSpec}. Prints a line for each violation, and exits 1 if there was one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type workload struct {
	Name     string                 `json:"name"`
	Template corev1.PodTemplateSpec `json:"template"`
}

func main() {
	if len(os.Args) != 3 {
		fail("usage: check-pod-security LEVEL FILE, for example restricted templates.jsonl")
	}
	level, err := api.ParseLevel(os.Args[1])
	if err != nil {
		fail(err.Error())
	}
	workloads, err := read(os.Args[2])
	if err != nil {
		fail(err.Error())
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		fail(err.Error())
	}
	wanted := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	violations := 0
	for _, each := range workloads {
		for _, result := range evaluator.EvaluatePod(wanted, &each.Template.ObjectMeta, &each.Template.Spec) {
			if !result.Allowed {
				violations++
				fmt.Printf("%s: %s (%s)\n", each.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
	if violations > 0 || len(workloads) == 0 {
		fail(fmt.Sprintf("%d pod templates, %d violations", len(workloads), violations))
	}
	fmt.Println(len(workloads))
}

func read(path string) ([]workload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var workloads []workload
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var each workload
		if err := json.Unmarshal(lines.Bytes(), &each); err != nil {
			return nil, err
		}
		workloads = append(workloads, each)
	}
	return workloads, lines.Err()
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
