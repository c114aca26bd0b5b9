package demo

import "onsale/internal/id"

// line compares what people were told in the waiting room with what is stored: their entries are there, as theirs and by
// their numbers, and nobody else came in by one.
func (c *checker) line(s *lineSaid) {
	for session, said := range s.entries {
		name := session.Text(id.Session)
		is, ok := c.ledger.sessions[session]
		if !ok {
			c.bad("%s was acknowledged and is not in the ledger", name)
			continue
		}
		c.customer(name, said.Buyer, is.customer)
		if is.at != said.At {
			c.bad("%s is of %s, %s was said", name, is.at, said.At)
		}
	}
	by := map[numberKey]id.ID{}
	for session, is := range c.ledger.sessions {
		name := session.Text(id.Session)
		if other, ok := by[is.at]; ok {
			c.bad("%s and %s both came in by %s", name, other.Text(id.Session), is.at)
		}
		by[is.at] = session
		if buyer, ok := s.numbers[is.at]; ok {
			c.customer(name, buyer, is.customer)
		}
	}
}
