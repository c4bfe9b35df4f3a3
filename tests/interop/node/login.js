"use strict";
// Says whether kafkajs comes in at a listener: kafkajs ADDRESS MECHANISM USER PASSWORD [CA]; the mechanism "-" is none, and the
// password of OAUTHBEARER is a token.

const fs = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

function login(mechanism, username, password) {
  if (mechanism === "-") {
    return undefined;
  }
  if (mechanism === "OAUTHBEARER") {
    return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: password }) };
  }
  return { mechanism: mechanism.toLowerCase(), username, password };
}

async function main() {
  const [, address, mechanism, username, password, ca] = process.argv.slice(2);
  const kafka = new Kafka({
    brokers: [address],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 4000,
    requestTimeout: 4000,
    retry: { retries: 0 },
    ssl: ca ? { ca: [fs.readFileSync(ca, "utf-8")] } : false,
    sasl: login(mechanism, username, password),
  });
  const admin = kafka.admin();
  try {
    await admin.connect();
    await admin.listTopics();
    console.log("in");
  } catch (error) {
    console.log(`refused: ${error.message}`);
  } finally {
    await admin.disconnect();
  }
}

main();
