"""The admin client: topics, settings, groups, transactions, access lists, quotas and brokers in one class."""

from horolog.client.admin.admin_acls import AclAdmin
from horolog.client.admin.admin_cluster import ClusterAdmin
from horolog.client.admin.admin_configs import ConfigAdmin, Operation, Resource
from horolog.client.admin.admin_groups import GroupAdmin
from horolog.client.admin.admin_placement import PlacementAdmin
from horolog.client.admin.admin_quotas import QuotaAdmin
from horolog.client.admin.admin_topics import UP_TO_THE_END, NewTopic, TopicAdmin
from horolog.client.admin.admin_users import UserAdmin


class Admin(TopicAdmin, ConfigAdmin, GroupAdmin, ClusterAdmin, AclAdmin, UserAdmin, QuotaAdmin, PlacementAdmin):
    """Made from bootstrap addresses, then with a client of its own, or from a shared client.

    A call about several things raises PartialFailure if some of them failed: `failures` and `results` say which.
    """


__all__ = ["UP_TO_THE_END", "Admin", "NewTopic", "Operation", "Resource"]
