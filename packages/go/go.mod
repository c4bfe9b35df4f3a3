module horolog.test/testbroker

go 1.21
