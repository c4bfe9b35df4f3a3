"""The console: browser pages built on the client library, so that they show horolog and Kafka clusters alike.

- `options` holds the clusters, the login and the limits
- `sessions` keeps the logged-in browsers, `guard` checks each request before a page sees it
- `visits` reads a request: cluster, zone, times, filters; `rendering` turns data into HTML
- `now`, `topic`, `groups` and others each build the data of a page, and bound their requests to the broker
- `app` puts them together, `serving` listens
"""
