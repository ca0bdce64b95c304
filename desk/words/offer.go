package words

import (
	"fmt"
	"strings"

	"tare/desk/advise"
)

// Column heads of offers.
const (
	OfferAnswers   = "at most requests/s each"
	OfferInstances = "instances"
	OfferKeeps     = "probability"
)

// OfferHourly is the head of the column with the price of all instances for an hour.
func OfferHourly(o *advise.Offers) string { return Plain(o.Currency) + "/hour" }

// OfferPerMillion is the head of the column with the price of a million requests.
func OfferPerMillion(o *advise.Offers) string { return Plain(o.Currency) + "/million" }

// Offer has the cells of an offer: the choice, the requests a second that each instance answers, and the number of instances. Then follow
// the prices of an hour and of a million requests, and the probability that the choice keeps the objective.
func Offer(r *advise.Ranking, o *advise.Offer) [6]string {
	c := r.Choices[o.Choice]
	name := Choice(c.Treatment, r.Networks)
	if c.Predicted {
		name += ", predicted"
	}
	instances := "–"
	if o.Instances > 0 {
		instances = Thousands(o.Instances)
	}
	return [6]string{name, Digits(o.Rate, 3), instances, Digits(o.Total, 3), Digits(o.PerMillion, 3), Probability(o.Keeps)}
}

// Probability writes a probability. It does not claim more certainty than the data give.
func Probability(p float64) string {
	const most = 0.999
	if p > most {
		return "over 99.9 %"
	}
	return Percent(p, 1)
}

// Offered says which choice is cheapest, and which is next.
func Offered(r *advise.Ranking) string {
	o := r.Offers
	keeps := Plain(o.Objective.String())
	if o.Demand > 0 {
		keeps += " at " + Digits(o.Demand, 4) + " requests a second"
	}
	if len(o.List) == 0 {
		return fmt.Sprintf("No choice here is known to keep %s and has a price.", keeps)
	}
	name := func(f *advise.Offer) string {
		c := r.Choices[f.Choice]
		s := Choice(c.Treatment, r.Networks)
		if f.Instances > 0 {
			s = Count(f.Instances, "instance") + " of " + s
		}
		if c.Predicted {
			s += " (predicted, not measured)"
		}
		return s
	}
	price := func(f *advise.Offer) string {
		if o.Demand > 0 {
			return Digits(f.Total, 3) + " " + o.Currency + " an hour"
		}
		return Digits(f.PerMillion, 3) + " " + o.Currency + " a million requests"
	}
	first := &o.List[0]
	var b strings.Builder
	fmt.Fprintf(&b, "The cheapest that keeps %s: %s, %s; the probability that it does is %s.", keeps, name(first), price(first), Probability(first.Keeps))
	if len(o.List) > 1 {
		next := &o.List[1]
		fmt.Fprintf(&b, " The next is %s, %s", name(next), price(next))
		switch more := next.PerMillion/first.PerMillion - 1; {
		case next.PerMillion == first.PerMillion:
			b.WriteString(", as much")
		case first.PerMillion > 0 && more >= 0.005:
			fmt.Fprintf(&b, " (%s more)", Percent(more, 0))
		}
		b.WriteByte('.')
	}
	return Plain(b.String())
}

// OfferedHow says what an offer assumes.
func OfferedHow(o *advise.Offers) string {
	s := fmt.Sprintf("Each instance gets as many requests as it answers within the objective with a probability of at least %s.", Percent(advise.Sure, 0))
	if o.Demand > 0 {
		s = fmt.Sprintf("Each instance gets an equal part of the demand, and at most as many requests as it answers within the objective with a probability of %s.", Percent(advise.Sure, 0)) +
			" Where prices are equal, the choice with the higher probability comes first. Tare assumes that the demand is spread evenly, and that instances do not slow each other down."
	}
	return s
}
