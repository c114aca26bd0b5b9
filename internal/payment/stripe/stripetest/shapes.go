package stripetest

import "maps"

// refundsShown is how many refunds an expanded charge shows.
const refundsShown = 10

// shape is an intent as the API shows it; whole expands its latest charge with the refunds.
func (s *Server) shape(p *intent, whole bool) object {
	o := object{
		"id": p.id, "object": "payment_intent", "amount": p.amount, "amount_capturable": p.capturable, "amount_received": p.received,
		"capture_method": p.captureMethod, "client_secret": p.secret, "confirmation_method": "automatic", "created": p.created.Unix(),
		"currency": p.currency, "livemode": false, "metadata": maps.Clone(p.metadata), "payment_method_types": p.methods,
		"status": p.status, "latest_charge": nil, "last_payment_error": nil, "next_action": nil, "cancellation_reason": nil,
	}
	if p.lastError != nil {
		o["last_payment_error"] = maps.Clone(p.lastError)
	}
	if p.reason != "" {
		o["cancellation_reason"] = p.reason
	}
	if ch := p.latest(); ch != nil {
		o["latest_charge"] = ch.id
		if whole {
			o["latest_charge"] = s.shapeCharge(p, ch, true)
		}
	}
	if p.status == "requires_action" {
		o["next_action"] = object{"type": "use_stripe_sdk", "use_stripe_sdk": object{"type": "three_d_secure_redirect"}}
		if p.returnURL != "" {
			o["next_action"] = object{"type": "redirect_to_url", "redirect_to_url": object{
				"url": "https://hooks.stripe.example/3d_secure/" + p.id, "return_url": p.returnURL,
			}}
		}
	}
	return o
}

func (s *Server) shapeCharge(p *intent, ch *charge, withRefunds bool) object {
	o := object{
		"id": ch.id, "object": "charge", "amount": ch.amount, "amount_captured": ch.captured, "amount_refunded": int64(0),
		"captured": ch.captured > 0, "created": ch.created.Unix(), "currency": p.currency, "livemode": false, "payment_intent": p.id,
		"metadata": maps.Clone(ch.metadata), "status": ch.status, "paid": ch.status == "succeeded", "failure_code": nil, "refunded": false,
	}
	if ch.failure != "" {
		o["failure_code"] = ch.failure
	}
	if ch == p.latest() && ch.status == "succeeded" {
		returned := s.returned(p) + ch.released
		o["amount_refunded"], o["refunded"] = returned, returned == ch.amount
	}
	if withRefunds {
		data := []any{}
		all := s.refundsOf(p.id)
		for _, r := range all[:min(len(all), refundsShown)] {
			data = append(data, s.shapeRefund(r))
		}
		o["refunds"] = object{"object": "list", "has_more": len(all) > refundsShown, "url": "/v1/charges/" + ch.id + "/refunds", "data": data}
	}
	return o
}

func (s *Server) shapeRefund(r *refund) object {
	return object{
		"id": r.id, "object": "refund", "amount": r.amount, "charge": r.intent.latest().id, "created": r.created.Unix(),
		"currency": r.intent.currency, "metadata": maps.Clone(r.metadata), "payment_intent": r.intent.id, "reason": nil, "status": r.status,
	}
}
