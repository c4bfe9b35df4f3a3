"""The console: pages in a browser over the client library, so that they show a horolog and a Kafka alike.

- `options` say which clusters, who may come in and what the bounds are
- `sessions` know who has come in, `guard` decides about each request before a page sees it
- `visits` read a request: cluster, zone, times, filters; `rendering` turns data into text that browsers show
- `now`, `topic`, `groups` and their neighbours each build the data of a page, and bound what they ask of the broker
- `app` puts them together, `serving` listens
"""
