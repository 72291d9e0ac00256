"""The report in the formats that pipelines read; text from outside is escaped for each."""
