package main

import (
	"os"

	"github.com/spf13/cobra"

	"tare/desk/data"
	"tare/desk/export"
	"tare/desk/predict"
	"tare/desk/show/kinds"
	"tare/desk/terminal"
)

// predicting holds the flags of predict that need no measurement.
type predicting struct {
	calibration []string // folders
	of          string   // folder
	format      string
	verbose     bool
}

// predictDesk is the command without what needs a measurement.
func predictDesk(p *predicting) *cobra.Command {
	c := &cobra.Command{
		Use:   "predict CALIBRATION…",
		Short: "Predict what work would cost on other platforms, from one run on bare metal",
		Long: `A calibration is the results folder of a study that measured single events and workloads in several environments, such as
the study calibration. From it Tare knows what each kind of system call, page fault or switch costs there. One run on bare
metal counts the events of your work. The result is the expected ratio in each environment, with a 95 % interval.

Tare refuses to predict where it does not know the value within a factor of 2.5. It also refuses work that has many more
events of a kind than any program of the calibration.

Without a run, the command says how good its predictions are. It predicts each workload of the calibration from the others,
and compares the predictions with the measurements. docs/model.md has the equations and says what the model leaves out.`,
		Args: folders,
	}
	f := c.Flags()
	f.StringVar(&p.of, "of", "", "results folder `DIR` of a run on bare metal with counted events")
	f.BoolVar(&p.verbose, "verbose", false, "list all workloads, not only those outside their intervals")
	return c
}

// answer reads the calibration, and prints how good its predictions are, or what it predicts of a run.
func (p *predicting) answer() error {
	c, err := p.calibrated()
	if err != nil {
		return err
	}
	if p.of == "" {
		if checks := c.Check(); p.format == "json" {
			return export.Checks(os.Stdout, checks)
		} else {
			return terminal.Checks(os.Stdout, checks, c.Skipped, p.verbose, screen(os.Stdout))
		}
	}
	s, err := data.Read([]string{p.of}, data.Options{Kinds: kinds.All, Baseline: bareMetal})
	if err != nil {
		return err
	}
	return p.forecast(c, s)
}

func (p *predicting) calibrated() (*predict.Calibration, error) {
	s, err := data.Read(p.calibration, data.Options{Kinds: kinds.All, Baseline: bareMetal})
	if err != nil {
		return nil, err
	}
	return predict.Calibrate(s)
}

// forecast prints what is predicted of a run.
func (p *predicting) forecast(c *predict.Calibration, run *data.Summary) error {
	all, err := c.Predict(run)
	if err != nil {
		return err
	}
	return p.show(all)
}

func (p *predicting) show(all *predict.Forecasts) error {
	if p.format == "json" {
		return export.Forecasts(os.Stdout, all)
	}
	return terminal.Forecasts(os.Stdout, all, screen(os.Stdout))
}
